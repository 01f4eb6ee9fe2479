/**
 * Works through what can wait, one piece a task, so that no task is long: the page answers in between.
 *
 * `setTimeout` waits four milliseconds each time once it is nested: a message does not.
 */
import { defineAsyncComponent } from 'vue'

const left = []
let isGoing = false
let channel

export function soon(work) {
  left.push(work)
  if (!isGoing) post()
}

/** The same work in a task of its own; asked for again before it was done, it is done once. */
export function eachInATask(work) {
  let isAsked = false
  return () => {
    if (isAsked) return
    isAsked = true
    soon(() => {
      isAsked = false
      work()
    })
  }
}

/** The same component; where a page was rendered before, it comes alive in a task of its own. */
export const later = (part) => defineAsyncComponent({ loader: async () => part, hydrate: soon })

function post() {
  isGoing = true
  if (!channel) {
    channel = new MessageChannel()
    channel.port1.onmessage = next
  }
  channel.port2.postMessage(undefined)
}

function next() {
  try {
    left.shift()?.()
  } finally {
    isGoing = false
    if (left.length > 0) post()
  }
}
