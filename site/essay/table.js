/** A run in numbers, second by second, for a reader who does not see it. */

/** A request is `[host, queued, sent, arrived, answered, status]`. */
export const isAnswered = ([, , , , answered]) => answered !== null
export const isServed = ([, , , , , status]) => status >= 200 && status < 400

/** What a run does in each second, for a reader who does not see it: sent, served, refused, and what waits. */
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
