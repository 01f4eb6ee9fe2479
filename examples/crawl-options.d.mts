/** What `npm start` can be told. */

export const HELP: string

export function crawlOptions(args?: string[]): {
  positionals: string[]
  values: {
    'max-pages': string
    concurrency: string
    'min-delay'?: string
    'start-delay'?: string
    rampup: boolean
    limit: string
    state?: string
    port: string
    help: boolean
  }
}
