/** A picture of a run as SVG, by hand: lines over time, each in a band of its own with its own scale. */

/** One line. */
export interface Line {
  readonly name: string
  readonly unit: string
  readonly color: string
  readonly points: readonly (readonly [at: number, value: number])[]
}

const WIDTH = 900
const BAND = 130
const LEFT = 70
const GAP = 34

export function plot(title: string, lines: readonly Line[]): string {
  const end = Math.max(1, ...lines.flatMap(({ points }) => points.map(([at]) => at)))
  const height = GAP + lines.length * (BAND + GAP) + 20
  const bands = lines.map((line, index) => band(line, GAP + index * (BAND + GAP), end))
  const bottom = height - 12
  const marks = [0, 0.25, 0.5, 0.75, 1].map((share) => {
    const x = LEFT + share * (WIDTH - LEFT - 20)
    return `<text x="${x}" y="${bottom}" text-anchor="middle">${seconds(share * end)}</text>`
  })
  const style = 'font:12px system-ui,sans-serif;fill:#444'
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" role="img">
<title>${escaped(title)}</title><rect width="100%" height="100%" fill="#fff"/><g style="${style}">
<text x="${LEFT}" y="18" style="font-weight:600">${escaped(title)}</text>
${[...bands, ...marks].join('\n')}
</g></svg>
`
}

function band({ name, unit, color, points }: Line, top: number, end: number): string {
  const most = points.reduce((most, [, value]) => Math.max(most, value), 0) || 1
  const place = ([at, value]: readonly [number, number]) => {
    const x = LEFT + (at / end) * (WIDTH - LEFT - 20)
    return `${x.toFixed(1)},${(top + BAND - (value / most) * (BAND - 16)).toFixed(1)}`
  }
  return [
    `<line x1="${LEFT}" y1="${top + BAND}" x2="${WIDTH - 20}" y2="${top + BAND}" stroke="#bbb"/>`,
    `<text x="${LEFT - 8}" y="${top + 20}" text-anchor="end">${rounded(most)}</text>`,
    `<text x="${LEFT - 8}" y="${top + BAND}" text-anchor="end">0</text>`,
    `<text x="${LEFT + 6}" y="${top + 8}" fill="${color}">${escaped(name)}, ${escaped(unit)}</text>`,
    `<polyline fill="none" stroke="${color}" stroke-width="1.5" points="${points.map(place).join(' ')}"/>`,
  ].join('')
}

export const rounded = (value: number): string =>
  value >= 100 ? String(Math.round(value)) : String(Number(value.toPrecision(3)))

/** A span of seconds in words that fit. */
export function seconds(value: number): string {
  if (!Number.isFinite(value)) return '–'
  if (value < 120) return `${Math.round(value)} s`
  if (value < 7200) return `${Math.round(value / 60)} min`
  return `${(value / 3600).toFixed(1)} h`
}

const escaped = (text: string) => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;')
