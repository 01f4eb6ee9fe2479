/**
 * What each part adds to a module: the bytes of its functions by crate and file, from the names that the
 * compiler wrote.
 *
 * Honest means: bytes as they are in the module, before gzip, which shrinks all of it to about two fifths.
 * A function that was inlined counts where it went. `data` are strings and tables, which name no owner.
 */

/** Bytes of functions by name, and of the data. */
export function sizesOf(bytes) {
  const names = new Map()
  const bodies = []
  let imported = 0
  let data = 0
  let at = 8
  const read = () => {
    let [value, shift] = [0, 0]
    for (;;) {
      const byte = bytes[at++]
      value |= (byte & 127) << shift
      if (byte < 128) return value >>> 0
      shift += 7
    }
  }
  const text = () => {
    const length = read()
    at += length
    return new TextDecoder().decode(bytes.subarray(at - length, at))
  }
  while (at < bytes.length) {
    const id = bytes[at++]
    const end = read() + at
    if (id === 0 && text() === 'name') {
      while (at < end) {
        const kind = bytes[at++]
        const part = read() + at
        if (kind === 1) for (let left = read(); left > 0; left--) names.set(read(), text())
        at = part
      }
    } else if (id === 2) {
      for (let left = read(); left > 0; left--) {
        text()
        text()
        const kind = bytes[at++]
        if (kind === 0) imported++
        if (kind === 0) read()
        else if (kind === 1) at++
        if (kind === 1 || kind === 2) {
          const limits = bytes[at++]
          read()
          if (limits & 1) read()
        } else if (kind === 3) at += 2
      }
    } else if (id === 10) {
      for (let left = read(); left > 0; left--) {
        const size = read()
        bodies.push(size)
        at += size
      }
    } else if (id === 11) {
      data = end - at
    }
    at = end
  }
  const functions = bodies.map((size, index) => [names.get(imported + index) ?? '?', size])
  return { functions, data }
}

/** The part that a function belongs to: a room of the engine, a crate, the library. */
export function partOf(name) {
  const path =
    name.match(/(?:^|[<&( ])((?:autothrottle|core|alloc|std|dlmalloc|talc)\w*(?:::\w+)*)/)?.[1] ?? ''
  const [crate = '', room = '', file = ''] = path.split('::')
  if (crate === 'autothrottle') return ['policy', 'headers'].includes(room) ? `${room}::${file}` : room
  if (crate === 'autothrottle_reading') return `reading::${room}`
  if (/^autothrottle_|wasm_bindgen|js_sys|__wbindgen|^wasmengine|^parse_/i.test(name))
    return 'boundary to JavaScript'
  if (/dlmalloc|talc|__rust_alloc|__rdl|realloc/.test(name)) return 'allocator'
  if (/fmt/.test(path)) return 'core::fmt'
  if (/btree/.test(path)) return 'BTreeMap'
  if (/sort/.test(path)) return 'sorting'
  return crate === '' ? 'other' : `${crate}, the rest`
}

/** Bytes by part, the largest first. */
export function parts(bytes) {
  const { functions, data } = sizesOf(bytes)
  const sizes = new Map([['data', data]])
  for (const [name, size] of functions) {
    const part = partOf(name)
    sizes.set(part, (sizes.get(part) ?? 0) + size)
  }
  return [...sizes].sort((a, b) => b[1] - a[1])
}
