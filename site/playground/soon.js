/** Works through what can wait, one piece a task, so that no task is long: the page answers in between. */
const left = []
let isGoing = false

export function soon(work) {
  left.push(work)
  if (isGoing) return
  isGoing = true
  setTimeout(next)
}

function next() {
  try {
    left.shift()?.()
  } finally {
    isGoing = left.length > 0
    if (isGoing) setTimeout(next)
  }
}
