/**
 * An nginx of one's own that limits, for a bench: one port for each who is to be limited apart, and what it
 * wrote down. Needs nginx (Debian's nginx-light will do).
 */
import { spawn, spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { freePort } from '../../tests/shared/server.mjs'

/** Whether the program can be run. */
export const has = (program) => spawnSync(program, ['-v']).error === undefined

/**
 * A limit of requests a second, as directives: of the `http` part and of the location. `status` refuses;
 * `delayed`: what is within the burst waits for its turn.
 */
export const limitReq = (rate, burst = 0, status = 429, delayed = false) => ({
  zone: (name) => `limit_req_zone $server_port zone=${name}:1m rate=${rate}r/s;`,
  use: (name) =>
    `limit_req zone=${name}${burst > 0 ? ` burst=${burst}${delayed ? '' : ' nodelay'}` : ''};
      limit_req_status ${status};`,
})

/** A limit of requests at a time. */
export const limitConn = (slots) => ({
  zone: (name) => `limit_conn_zone $server_port zone=${name}:1m;`,
  use: (name) => `limit_conn ${name} ${slots};`,
})

/** None. */
export const noLimit = { zone: () => '', use: () => '' }

/**
 * Starts it: `count` ports, each with `limit` for itself before the server at the port `upstream`. `stop`
 * gives what it wrote down: a line a request, as port, status, instant in seconds and the field `x-who`.
 */
export async function startNginx(limit, upstream, count) {
  const folder = mkdtempSync(join(tmpdir(), 'autothrottle-nginx-'))
  const ports = await freePorts(count)
  const file = join(folder, 'nginx.conf')
  const server = (port, index) => `server { listen 127.0.0.1:${port};
    location / { ${limit.use(`z${index}`)} proxy_pass http://127.0.0.1:${upstream};
      proxy_read_timeout 90s; proxy_http_version 1.1; proxy_set_header Connection ""; } }`
  writeFileSync(
    file,
    `daemon off; pid ${folder}/pid; error_log ${folder}/error.log crit; worker_processes 1;
events { worker_connections 4096; }
http {
  log_format plain '$server_port $status $msec $http_x_who';
  access_log ${folder}/access.log plain;
  client_body_temp_path ${folder}/a; proxy_temp_path ${folder}/b; fastcgi_temp_path ${folder}/c;
  uwsgi_temp_path ${folder}/d; scgi_temp_path ${folder}/e;
  limit_req_status 429; limit_conn_status 429;
  ${ports.map((_, index) => limit.zone(`z${index}`)).join('\n  ')}
  ${ports.map(server).join('\n  ')}
}`,
  )
  const child = spawn('nginx', ['-p', folder, '-c', file], { stdio: 'ignore' })
  const log = () => readFileSync(join(folder, 'access.log'), 'utf8')
  return { ports, stop: await listening(child, folder, log) }
}

export async function freePorts(count) {
  const ports = []
  while (ports.length < count) ports.push(await freePort())
  return ports
}

/**
 * Waits until a server listens. Gives how to stop it, which gives its log in words and removes its folder.
 */
export async function listening(child, folder, log) {
  const ended = new Promise((resolve) => child.once('exit', resolve))
  await sleep(400)
  return async () => {
    child.kill()
    await ended
    const lines = log().trim().split('\n')
    rmSync(folder, { recursive: true, force: true })
    return lines.map((line) => line.split(' '))
  }
}
