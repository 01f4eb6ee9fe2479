/**
 * Why a URL has no answer: a sentence for people, and a code that a program can count.
 *
 * `fetch failed` stands for a name that does not exist, a certificate that expired and a server that is down.
 * Only their causes differ.
 */

/** More time was taken than may be. */
export class LateError extends Error {
  readonly code = 'ERR_TIMEOUT'

  constructor(thing: string, ms: number) {
    super(`${thing} took more than ${ms} ms`)
  }
}

/** A failure's code, by the code of the first cause that has one of these. */
const CODES: readonly (readonly [string, RegExp])[] = [
  ['ERR_DNS', /^(?:ENOTFOUND|EAI_\w+|ENODATA|ESERVFAIL)$/],
  ['ERR_CONNECTION_REFUSED', /^ECONNREFUSED$/],
  ['ERR_CONNECTION_RESET', /^(?:ECONNRESET|ECONNABORTED|EPIPE|UND_ERR_SOCKET)$/],
  ['ERR_UNREACHABLE', /^(?:EHOSTUNREACH|ENETUNREACH|ENETDOWN|EADDRNOTAVAIL)$/],
  ['ERR_TIMEOUT', /^(?:ETIMEDOUT|UND_ERR_\w+_TIMEOUT)$/],
  [
    'ERR_TLS',
    /^(?:CERT_\w+|ERR_TLS_\w+|ERR_SSL_\w+|EPROTO|UNABLE_TO_\w+|\w*SELF_SIGNED_CERT\w*|HOSTNAME_\w+)$/,
  ],
]
/** Error codes of a disk that is full or read-only. */
const DISK = /^(?:ENOSPC|EDQUOT|EROFS|EACCES|EPERM|EIO|EMFILE|ENFILE|ENOTDIR)$/
const NETWORK = new Set(CODES.map(([code]) => code))

/** An error and its causes, the outermost first. */
function* chainOf(error: unknown): Generator<NodeJS.ErrnoException> {
  let at = error
  for (let depth = 0; depth < 5 && at instanceof Error; depth++) {
    yield at
    at = at.cause
  }
}

/** The code of a failure: of the network, else the throttle's own, else `ERR_FETCH`. */
export function codeOf(error: unknown): string {
  for (const { code = '' } of chainOf(error))
    for (const [name, codes] of CODES) if (typeof code === 'string' && codes.test(code)) return name
  for (const { code } of chainOf(error)) if (typeof code === 'string' && code.startsWith('ERR_')) return code
  return 'ERR_FETCH'
}

/** Whether no server was reached, or none that speaks as was expected. */
export const isOfNetwork = (code: string | undefined) => code !== undefined && NETWORK.has(code)

/** Whether it is about a file of ours: what a network says is a cause of `fetch failed`. */
export const isOfDisk = (error: unknown) => DISK.test((error as NodeJS.ErrnoException | null)?.code ?? '')

/**
 * The format of OpenSSL's errors: numbers, the library, the function, the reason, and where in its sources.
 */
const OPENSSL = /^[\dA-F]+:error:[\dA-F]+:[^:]*:[^:]*:([^:]+):[\s\S]*$/

/** The error's words and those of its causes: `fetch failed` alone does not say that the host is down. */
export function messageOf(error: unknown): string {
  const words = [...chainOf(error)].map(({ message, code, name }) =>
    (message || code || name).trim().replace(OPENSSL, 'TLS: $1'),
  )
  const [first = String(error), ...causes] = words
  return causes.length > 0 ? `${first} (${causes.join(': ')})` : first
}
