/**
 * Draws a run at an instant: requests wait on the left, travel through the throttle to the server, and come back
 * served or refused. A dot is a request; what it is shows in its shape as well as in its colour. For a reader who
 * does not see it, `table` has it in numbers.
 */

/** Why the next request waits, in few words: there is room for few. */
const WAITS_FOR = {
  'max-in-flight': 'all places taken',
  concurrency: 'its places taken',
  delay: 'the delay',
  backoff: 'backoff',
  hold: 'Retry-After',
  rate: 'the rate',
}

const HEAD = 26
const FONT = 'system-ui, -apple-system, "Segoe UI", Roboto, sans-serif'

/** Colours of the page, asked for once for each look of it. */
const looks = new Map()
function look(element) {
  const key = `${document.documentElement.className} ${matchMedia('(forced-colors: active)').matches}`
  if (!looks.has(key)) {
    const style = getComputedStyle(element)
    const of = (name) => style.getPropertyValue(name).trim()
    looks.set(key, {
      ...{ text: of('--es-text'), quiet: of('--es-quiet'), line: of('--es-line'), card: of('--es-card') },
      ...{ flying: of('--flying'), served: of('--served'), refused: of('--refused') },
    })
  }
  return looks.get(key)
}

/** Draws the runs of a scene below each other, `now` in milliseconds of the simulation. */
export function draw(canvas, { runs, hosts, server }, now) {
  const { clientWidth: width, clientHeight: height } = canvas
  const ratio = Math.min(2, devicePixelRatio)
  if (canvas.width !== width * ratio || canvas.height !== height * ratio) {
    canvas.width = width * ratio
    canvas.height = height * ratio
  }
  const ctx = canvas.getContext('2d')
  ctx.setTransform(ratio, 0, 0, ratio, 0, 0)
  ctx.clearRect(0, 0, width, height)
  const colours = look(canvas)
  const each = height / runs.length
  runs.forEach((run, index) => {
    drawRun(ctx, run, { hosts, says: server }, now, { top: index * each, height: each - 10, width }, colours)
  })
}

/** The numbers of a run's requests at an instant. */
export function counts({ requests }, now) {
  const found = { waiting: 0, flying: 0, served: 0, refused: 0 }
  for (const request of requests) {
    const state = stateOf(request, now)
    if (state) found[state]++
  }
  return found
}

/** A request is `[host, queued, sent, arrived, answered, status]`. */
export const isAnswered = ([, , , , answered]) => answered !== null
export const isServed = ([, , , , , status]) => status >= 200 && status < 400

function stateOf(request, now) {
  const [, queued, sent, , answered] = request
  if (now < queued) return undefined
  if (now < sent) return 'waiting'
  if (answered === null || now < answered) return 'flying'
  return isServed(request) ? 'served' : 'refused'
}

function drawRun(ctx, run, { hosts, says }, now, { top, height, width }, colours) {
  const gate = Math.round(width * 0.36)
  const server = Math.round(width * 0.82)
  const lane = (height - HEAD) / hosts.length
  const radius = Math.max(2.5, Math.min(5, lane / 12))
  const write = (text, x, y, { align = 'left', size = 12, weight = 400, fill = colours.quiet } = {}) => {
    ctx.font = `${weight} ${size}px ${FONT}`
    ctx.fillStyle = fill
    ctx.textAlign = align
    ctx.fillText(text, x, y)
  }
  const { served, refused } = counts(run, now)
  write(run.label, 0, top + 15, { size: 14, weight: 600, fill: colours.text })
  write(`${served} served, ${refused} refused`, width, top + 15, {
    size: 14,
    align: 'right',
    fill: colours.text,
  })

  // The throttle, with why the next request waits; and the servers.
  const [, reason, until] = run.reasons.findLast(([from]) => from <= now) ?? []
  const isClosed = reason === 'hold' || reason === 'backoff'
  ctx.fillStyle = isClosed ? colours.refused : colours.quiet
  ctx.fillRect(gate - 2, top + HEAD, 4, height - HEAD)
  const left = until === undefined ? '' : ` ${Math.max(0, (until - now) / 1000).toFixed(1)} s`
  const isWaiting = run.requests.some((request) => stateOf(request, now) === 'waiting')
  if (reason && isWaiting) {
    const style = { fill: isClosed ? colours.refused : colours.quiet, weight: isClosed ? 600 : 400 }
    write(`${WAITS_FOR[reason] ?? reason}${left}`, gate + 8, top + height - 4, style)
  }
  hosts.forEach((host, index) => {
    const from = top + HEAD + index * lane
    ctx.strokeStyle = colours.line
    ctx.lineWidth = 1
    ctx.fillStyle = colours.card
    ctx.beginPath()
    ctx.roundRect(server, from + 3, width - server - 1, lane - 6, 6)
    ctx.fill()
    ctx.stroke()
    if (hosts.length > 1) {
      write(host.replace('.example', ''), width - 6, from + 16, { align: 'right', size: 11 })
      ctx.fillStyle = colours.line
      if (index > 0) ctx.fillRect(0, from, server - 6, 1)
    } else {
      write('server', width - 6, from + 18, { align: 'right' })
      says.forEach((line, row) => {
        write(line, width - 6, from + 36 + row * 15, { align: 'right', size: 11 })
      })
      write('waiting here', 0, from + 12)
      write('answered', 0, from + lane / 2 + 16)
    }
    const place = { from, lane, gate, server, width, radius, isAlone: hosts.length === 1 }
    dots(ctx, run, index, now, place, colours)
  })
}

/** All requests of one host: in heaps on the left, on the way, and at the server. */
function dots(ctx, { requests }, host, now, { from, lane, gate, server, width, radius, isAlone }, colours) {
  const label = isAlone ? 18 : 2
  const waiting = []
  const answered = []
  const working = []
  const flights = new Map()
  for (const request of requests) {
    const [of, , sent, arrived, end] = request
    const state = of === host ? stateOf(request, now) : undefined
    if (state === 'waiting') waiting.push(state)
    else if (state === 'served' || state === 'refused') answered.push(state)
    else if (state === 'flying') {
      const way = arrived === null ? 0 : arrived - sent
      const back = end === null ? Number.POSITIVE_INFINITY : end - way
      if (arrived === null || now < arrived) fly(flights, 'out', way === 0 ? 1 : (now - sent) / way)
      else if (now < back) working.push('flying')
      else fly(flights, isServed(request) ? 'served' : 'refused', (now - back) / way)
    }
  }
  const half = lane / 2
  const inside = { left: 4, right: gate - 10 }
  heap(
    ctx,
    waiting,
    { ...inside, top: from + label, bottom: from + half - 2, isFromRight: true },
    radius,
    colours,
  )
  heap(ctx, answered, { ...inside, top: from + half + label + 4, bottom: from + lane - 2 }, radius, colours)
  const box = {
    left: server + 6,
    right: width - 8,
    top: from + (isAlone ? 66 : 18),
    bottom: from + lane - 6,
  }
  heap(ctx, working, box, radius, colours)
  for (const [kind, progress] of flights) {
    for (const [along, number] of progress) {
      const share = kind === 'out' ? along : 1 - along
      const [begin, end] = [gate + 8, server - 8]
      const rows = Math.max(1, Math.floor((half - 8) / (2 * radius + 1)))
      for (let place = 0; place < number; place++) {
        // Those that left together go beside each other.
        const column = Math.floor(place / rows)
        const inColumn = Math.min(rows, number - column * rows)
        const offset = ((place % rows) - (inColumn - 1) / 2) * (2 * radius + 1)
        const behind = column * (2 * radius + 1) * (kind === 'out' ? -1 : 1)
        const x = Math.max(begin, Math.min(end, begin + share * (end - begin) + behind))
        const y = from + (kind === 'out' ? half * 0.5 : half * 1.5) + offset
        dot(ctx, kind === 'out' ? 'flying' : kind, x, y, radius, colours)
      }
    }
  }
}

/** One more on the way, as far as others of its kind or further. */
function fly(flights, kind, progress) {
  if (!flights.has(kind)) flights.set(kind, new Map())
  const all = flights.get(kind)
  all.set(progress, (all.get(progress) ?? 0) + 1)
}

/** Dots in rows, as large as fits. */
function heap(ctx, states, { left, right, top, bottom, isFromRight = false }, radius, colours) {
  if (states.length === 0) return
  let step = 2 * radius + 2
  const columnsOf = () => Math.max(1, Math.floor((right - left) / step))
  while (step > 3 && Math.ceil(states.length / columnsOf()) * step > bottom - top) step -= 0.5
  const columns = columnsOf()
  const size = Math.min(radius, step / 2 - 0.5)
  states.forEach((state, index) => {
    const along = (index % columns) * step + step / 2
    const x = isFromRight ? right - along : left + along
    dot(ctx, state, x, top + Math.floor(index / columns) * step + step / 2, size, colours)
  })
}

/** Waiting: a ring. On the way: full. Served: full, green. Refused: a cross. */
function dot(ctx, state, x, y, radius, colours) {
  ctx.lineWidth = Math.max(1, radius / 3)
  ctx.beginPath()
  if (state === 'refused') {
    ctx.strokeStyle = colours.refused
    ctx.lineWidth = Math.max(1.2, radius / 2)
    const arm = radius * 0.85
    ctx.moveTo(x - arm, y - arm)
    ctx.lineTo(x + arm, y + arm)
    ctx.moveTo(x + arm, y - arm)
    ctx.lineTo(x - arm, y + arm)
    ctx.stroke()
    return
  }
  ctx.arc(x, y, state === 'waiting' ? radius - ctx.lineWidth / 2 : radius, 0, 2 * Math.PI)
  if (state === 'waiting') {
    ctx.strokeStyle = colours.text
    ctx.stroke()
  } else {
    ctx.fillStyle = colours[state]
    ctx.fill()
  }
}

/** A run's requests in each second: sent, served, refused, and what waits. */
export function table({ requests, seconds }) {
  const rows = []
  for (let from = 0; from < seconds * 1000; from += 1000) {
    const within = (at) => at !== null && at >= from && at < from + 1000
    const answers = requests.filter(([, , , , answered]) => within(answered))
    const served = answers.filter(isServed).length
    rows.push({
      from: from / 1000,
      sent: requests.filter(([, , sent]) => within(sent)).length,
      served,
      refused: answers.length - served,
      waiting: requests.filter(([, queued, sent]) => queued < from + 1000 && sent >= from + 1000).length,
    })
  }
  return rows
}
