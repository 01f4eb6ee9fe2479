export { fromScrapySettings, type ScrapySettings } from './options/scrapy.js'
export { type ByIpOptions, byIp } from './scopes/by-ip.js'
export * from './throttle/everywhere.js'
export { build } from './wasm/load/build.js'
