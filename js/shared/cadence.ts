/**
 * How often a memory goes along with a beat: the larger, the less often.
 *
 * The trap is news, which hurries it: with a hundred thousand scopes it takes half a second to write down, so
 * a refusal each second would leave no time for anything else.
 */

/** Not more characters a second than this, on average. */
const CHARACTERS = 65_536
/**
 * So many times oftener where there is news: whoever has it tells it in its story as well, for half a minute.
 */
const HURRY = 10

export class Cadence {
  #at = 0
  #nextAt = 0

  isDue(now: number): boolean {
    return now >= this.#nextAt
  }

  /** It went at `now`. */
  went(now: number, characters: number): void {
    this.#at = now
    this.#nextAt = now + (1000 * characters) / CHARACTERS
  }

  /** There is news. */
  hurry(): void {
    this.#nextAt = Math.min(this.#nextAt, this.#at + (this.#nextAt - this.#at) / HURRY)
  }
}
