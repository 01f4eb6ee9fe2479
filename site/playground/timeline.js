/**
 * The time line: each request is a mark where it left, and another where it ended, joined by a line that leans
 * as far as it took. Rows say what it is, so that colour is not needed to tell them apart.
 */
import { colours } from './charts.js'

const ROWS = [
  { name: 'Sent', has: () => true, at: ({ sentAt }) => sentAt },
  { name: 'Served', has: ({ status }) => status >= 200 && status < 400, at: ({ answeredAt }) => answeredAt },
  {
    name: 'Refused',
    has: ({ status, answeredAt }) => answeredAt !== undefined && !(status >= 200 && status < 400),
    at: ({ answeredAt }) => answeredAt,
  },
]

/** How high the time line of this many policies is. */
export const timelineHeight = (groups) => 30 + groups * (ROWS.length * 18 + gapOf(groups))

/** The space between groups; the names of many stand there. */
const gapOf = (groups) => (groups > 2 ? 22 : 10)

/** A hook of uPlot that draws it. `marks()` gives the groups: `{ colour, label, requests }`; `lit()` one request. */
export function drawTimeline(marks, lit) {
  return (plot) => {
    const { ctx, bbox } = plot
    const theme = colours()
    const ratio = devicePixelRatio
    const groups = marks()
    const groupHeight = bbox.height / groups.length
    const gap = gapOf(groups.length)
    ctx.save()
    ctx.beginPath()
    ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height)
    ctx.clip()
    const x = (ms) => Math.round(plot.valToPos(ms / 1000, 'x', true))
    const [from, to] = plot.window ?? [0, 1]
    groups.forEach(({ colour, requests }, group) => {
      const top = bbox.top + group * groupHeight + (gap - 6) * ratio
      const rowHeight = (groupHeight - gap * ratio) / ROWS.length
      const middle = (row) => top + rowHeight * (row + 0.5)
      const tall = rowHeight * 0.66
      const mark = (at, row, width) => ctx.fillRect(x(at) - width / 2, middle(row) - tall / 2, width, tall)
      for (let row = 0; row < ROWS.length; row++) {
        ctx.fillStyle = theme.grid
        ctx.fillRect(bbox.left, Math.round(middle(row)), bbox.width, Math.max(1, ratio / 2))
      }
      const seen = requests.filter(
        ({ sentAt, answeredAt }) => (answeredAt ?? sentAt) / 1000 >= from && sentAt / 1000 <= to,
      )
      const width = Math.max(1, (seen.length > 600 ? 1 : 2) * ratio)
      const alpha = seen.length > 1500 ? 0.5 : 0.9
      ctx.globalAlpha = alpha
      for (const request of seen) {
        ctx.fillStyle = colour
        mark(request.sentAt, 0, width)
        const row = ROWS.findIndex((each, index) => index > 0 && each.has(request))
        if (row < 0) continue
        ctx.fillStyle = row === 1 ? theme.served : request.status === 0 ? theme.failed : theme.refused
        ctx.globalAlpha = row === 2 ? 1 : alpha
        mark(request.answeredAt, row, row === 2 ? 2 * ratio : width)
        ctx.globalAlpha = alpha
      }
      ctx.globalAlpha = 1
      const chosen = lit()
      if (chosen && requests.includes(chosen)) {
        const row = ROWS.findIndex((each, index) => index > 0 && each.has(chosen))
        ctx.fillStyle = ctx.strokeStyle = theme.text
        mark(chosen.sentAt, 0, 3 * ratio)
        // Since when it waited.
        const queued = Math.max(x(chosen.queuedAt), bbox.left)
        ctx.globalAlpha = 0.35
        ctx.fillRect(queued, middle(0) - tall / 4, x(chosen.sentAt) - queued, tall / 2)
        ctx.globalAlpha = 1
        if (row > 0) {
          mark(chosen.answeredAt, row, 3 * ratio)
          ctx.lineWidth = ratio
          ctx.beginPath()
          ctx.moveTo(x(chosen.sentAt), middle(0))
          ctx.lineTo(x(chosen.answeredAt), middle(row))
          ctx.stroke()
        }
      }
    })
    ctx.restore()
    ctx.font = `${11 * ratio}px Inter, ui-sans-serif, system-ui, sans-serif`
    ctx.textAlign = 'right'
    ctx.textBaseline = 'middle'
    ctx.fillStyle = theme.text
    groups.forEach((_, group) => {
      const rowHeight = (groupHeight - gap * ratio) / ROWS.length
      ROWS.forEach(({ name }, row) => {
        const y = bbox.top + group * groupHeight + (gap - 6) * ratio + rowHeight * (row + 0.5)
        ctx.fillText(name, bbox.left - 6 * ratio, y)
      })
    })
    if (groups.length < 3) return
    // Many groups look alike: each says whose it is.
    ctx.textAlign = 'left'
    groups.forEach(({ label, colour }, group) => {
      ctx.fillStyle = colour
      ctx.fillText(label, bbox.left + 2 * ratio, bbox.top + group * groupHeight + 9 * ratio)
    })
  }
}
