import type { RequestListener, Server } from 'node:http'

export interface Listening {
  readonly server: Server
  readonly port: number
  readonly url: string
  stop(): void
}
export declare function listen(answer: RequestListener): Promise<Listening>
