/** The clients that are tried, each as its users make it. */
import Redis, { Cluster } from 'ioredis'
import Valkey, { Cluster as ValkeyCluster } from 'iovalkey'
import { createClient, createCluster } from 'redis'

const quiet = (client) => client.on('error', () => {})

/** By name; of a port. */
export const CLIENTS = {
  ioredis: (port) => quiet(new Redis(port, '127.0.0.1')),
  iovalkey: (port) => quiet(new Valkey(port, '127.0.0.1')),
  'ioredis through Sentinel': (port) =>
    quiet(new Redis({ sentinels: [{ host: '127.0.0.1', port }], name: 'mine' })),
  'node-redis': (port) => quiet(createClient({ url: `redis://127.0.0.1:${port}` })).connect(),
}

export const CLUSTERS = {
  ioredis: (port) => quiet(new Cluster([{ host: '127.0.0.1', port }])),
  iovalkey: (port) => quiet(new ValkeyCluster([{ host: '127.0.0.1', port }])),
  'node-redis': async (port) => {
    const cluster = quiet(createCluster({ rootNodes: [{ url: `redis://127.0.0.1:${port}` }] }))
    await cluster.connect()
    return cluster
  },
}

export const quit = (client) => Promise.resolve(client.quit ? client.quit() : client.close()).catch(() => {})
