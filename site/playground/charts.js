/**
 * uPlot, as all charts here use it: colours of the theme, one cursor for all, no motion of its own.
 */
import { onMounted, onUnmounted, watch } from 'vue'
import { eachInATask, soon } from './soon.js'
import { clock, short } from './words.js'

let uPlot
/** When uPlot is there: a task of its own, before the first chart. */
const ready = import('uplot').then((module) => {
  uPlot = module.default
})

const styleOf = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim()

/** The colours of lines, in order: one for each policy, or for each host. */
export const lineColours = () => ['--pg-a', '--pg-b', '--pg-c', '--pg-d'].map(styleOf)

/** The colours of the theme now. */
export const colours = () => ({
  text: styleOf('--vp-c-text-2'),
  grid: styleOf('--pg-grid'),
  limit: styleOf('--pg-limit'),
  served: styleOf('--served'),
  refused: styleOf('--refused'),
  failed: styleOf('--pg-failed'),
})

const FONT = '11px Inter, ui-sans-serif, system-ui, sans-serif'

/** The axis of time below each chart: minutes and seconds. */
const timeAxis = ({ text, grid }) => ({
  // Short times are all told in seconds, long ones all in minutes.
  stroke: text,
  font: FONT,
  grid: { stroke: grid, width: 1 },
  ticks: { show: false },
  size: 24,
  gap: 4,
  space: 70,
  incrs: [0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600],
  values: ({ window: [from, to] = [0, 60] }, splits) =>
    splits.map((second) => clock(second * 1000, (to - from) * 1000)),
})

/**
 * A chart of lines over time. `lines`: `{ label, colour, dash, step }` in the order of the data's columns.
 * `onCursor` hears the place under the pointer, or `null`.
 */
function lineChart(element, { lines, least, height, onCursor, hooks = {}, rows = false }) {
  const theme = colours()
  const options = {
    width: Math.max(200, element.clientWidth),
    height,
    padding: [8, 20, 0, 0],
    legend: { show: false },
    cursor: {
      sync: { key: 'playground', setSeries: false },
      y: false,
      drag: { x: false, y: false },
      points: { size: 6 },
    },
    scales: {
      x: { time: false, range: (plot, low, high) => plot.window ?? [low ?? 0, high ?? 1] },
      y: { range: (_, __, most) => [0, Math.max(least, (most ?? 0) * 1.12)] },
    },
    axes: [
      timeAxis(theme),
      {
        stroke: theme.text,
        font: FONT,
        grid: { stroke: theme.grid, width: 1 },
        ticks: { show: false },
        size: 56,
        gap: 6,
        space: 32,
        ...(rows && { splits: () => [], values: () => [] }),
        ...(!rows && {
          values: (_, splits) => splits.map((value) => (value >= 10_000 ? `${value / 1000}k` : short(value))),
        }),
      },
    ],
    series: [
      {},
      ...lines.map(({ label, colour, dash, step, width = 1.75 }) => ({
        label,
        stroke: colour,
        width,
        dash,
        spanGaps: true,
        points: { show: false },
        paths: step ? uPlot.paths.stepped({ align: 1 }) : undefined,
      })),
    ],
    hooks: { setCursor: [({ cursor }) => onCursor?.(cursor.idx ?? null)], ...hooks },
  }
  return new uPlot(options, [[], ...lines.map(() => [])], element)
}

/** Marks instants with a line from top to bottom: `marks()` gives `{ at, isChange }`. A hook of uPlot. */
export function drawMarks(marks) {
  return (plot) => {
    const { ctx, bbox } = plot
    const { text } = colours()
    const [from, to] = plot.window ?? [0, 1]
    ctx.save()
    ctx.strokeStyle = text
    ctx.globalAlpha = 0.55
    ctx.lineWidth = devicePixelRatio
    ctx.setLineDash([2 * devicePixelRatio, 3 * devicePixelRatio])
    for (const { at } of marks()) {
      if (at / 1000 < from || at / 1000 > to) continue
      const x = Math.round(plot.valToPos(at / 1000, 'x', true))
      ctx.beginPath()
      ctx.moveTo(x, bbox.top)
      ctx.lineTo(x, bbox.top + bbox.height)
      ctx.stroke()
    }
    ctx.restore()
  }
}

/**
 * A chart of a component, as wide as its place: made once uPlot is there, and anew when `again` has changed. Each
 * frame shows what `data(stage)` gives, and calls `drawn`. For a story with other lines `data` gives `undefined`,
 * as their chart comes after this frame. Returns a function that gives the chart.
 */
export function useChart(place, { props, again, options, data, drawn }) {
  let chart
  let observer
  let isGone = false
  let isReady = false
  const draw = () => {
    const { stage } = props
    if (!chart || !stage) return
    const columns = data(stage)
    if (columns?.length !== chart.series.length) return
    // It fills from the left, then goes along.
    const { span } = stage.program
    chart.window = [Math.max(0, stage.now - span) / 1000, Math.max(stage.now, span) / 1000]
    chart.setData(columns)
    drawn?.()
  }
  const end = () => {
    observer?.disconnect()
    chart?.destroy()
  }
  const make = () => {
    if (isGone || !isReady) return
    end()
    const { value: element } = place
    const made = options()
    chart = lineChart(element, made)
    observer = new ResizeObserver(() => {
      const width = Math.floor(element.clientWidth)
      if (width > 0 && width !== chart.width) chart.setSize({ width, height: made.height })
    })
    observer.observe(element)
    draw()
  }
  onMounted(async () => {
    await ready
    isReady = true
    soon(make)
  })
  onUnmounted(() => {
    isGone = true
    end()
  })
  watch(() => props.frame, eachInATask(draw))
  watch(again, make, { flush: 'post' })
  return () => chart
}
