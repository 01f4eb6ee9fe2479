/** What `inChild` starts. It keeps WebAssembly's memories at hand: V8 does not count them. */
import { pathToFileURL } from 'node:url'

const Instance = WebAssembly.Instance
globalThis.memories = []
WebAssembly.Instance = class extends Instance {
  constructor(...args) {
    super(...args)
    globalThis.memories.push(this.exports.memory)
  }
}
const [file, ...args] = process.argv.slice(2)
const { child } = await import(pathToFileURL(file).href)
console.log(JSON.stringify(await child(...args)))
process.exit(0)
