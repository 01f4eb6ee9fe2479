/**
 * Writes `docs/api.md`: every public member with its signature and the first paragraph of its comment, as the
 * sources have it. `tests/js/pages.test.ts` says when the page is old.
 */
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { parseSync } from 'vite'

const root = fileURLToPath(new URL('..', import.meta.url))

/** The sections of the page: a heading, a file, and what stands in it; `as` is how one gets at a member. */
const SECTIONS = [
  ['Make one', 'throttle/throttle', ['createThrottle', 'throttledFetch']],
  ['A throttle', 'throttle/throttle', ['Throttle'], 'throttle.'],
  ['A permit: `acquire`, and the argument of `run` and `map`', 'core/permit', ['Permit'], 'permit.'],
  ['What `permit.settle` takes', 'core/permit', ['PermitOutcome']],
  ['One scope: `throttle.scope(name)`', 'scopes/control', ['ScopeControl'], 'scope.'],
  ['Options of one request', 'core/requests', ['RequestOptions', 'FetchOptions', 'RunOptions']],
  ['Options of `map`', 'core/map', ['MapOptions']],
  ['`throttle.peek(url)`', 'wasm/types', ['Peek']],
  ['`throttle.stats()`', 'wasm/generated', ['Stats']],
  ['Statistics of a scope', 'wasm/generated', ['ScopeStats']],
  ['Of one budget: `stats.budgets[name]`', 'wasm/generated', ['BudgetStats']],
  [
    'Rules for scopes',
    'scopes/hooks',
    ['byHost', 'byEndpoint', 'byDomainHierarchy', 'addScope', 'updateScopeBackoff'],
  ],
  ['', 'scopes/by-ip', ['byIp']],
  ["Scrapy's settings", 'options/scrapy', ['fromScrapySettings']],
  ['Options of `autothrottle/llm`, and its statistics', 'llm', ['LlmOptions', 'LlmStats']],
  ['', 'llm/budgets', ['LlmLimit']],
  ['A clock for tests: `autothrottle/testing`', 'testing', ['FakeClock'], 'clock.'],
]

/** Every file of `js/` is an entry of the package. */
const ENTRIES = readdirSync(`${root}js`)
  .filter((name) => name.endsWith('.ts') && name !== 'index.ts')
  .map((name) => name.slice(0, -3))

/** Functions of entries that stand in other files, or in another order. */
const ELSEWHERE = {
  presets: { presets: ['presets', 'preset', 'presetHosts', 'bodyHints'] },
  simulate: {
    simulate: ['simulate'],
    'simulate/live': ['createSimulation', 'replaySimulation'],
    'simulate/server': ['playServer'],
  },
  slim: { 'wasm/load/initialize': ['initialize'] },
}

/** The functions that an entry exports: the file in which each stands. */
const functionsOf = (entry) => {
  if (entry in ELSEWHERE) return ELSEWHERE[entry]
  const text = readFileSync(`${root}js/${entry}.ts`, 'utf8')
  const names = [...text.matchAll(/^export (?:async )?(?:function|const) (\w+)/gm)].map(([, name]) => name)
  return names.length > 0 ? { [entry]: names } : {}
}

const oneLine = (text) =>
  text
    .replaceAll(/\s+/g, ' ')
    .replaceAll(/([[(<]) | (?=[\])>])/g, '$1')
    .replaceAll(/,(?=\))/g, '')
    .trim()
/** A signature without what only a reader of the code needs. */
const short = (signature) =>
  oneLine(signature)
    .replaceAll(/ = (?:NO_OPTIONS|NOTHING|\(\.\.\.args\) => itself\(.*?\)|lastLabels)/g, ' = …')
    .replace(/\?(: .*) \| undefined$/, '?$1')

function file(name) {
  const code = readFileSync(`${root}js/${name}.ts`, 'utf8')
  const { program, comments, errors } = parseSync(`${name}.ts`, code, { lang: 'ts' })
  if (errors.length > 0) throw new Error(errors[0].message)
  /** The first paragraph of the comment right before a node; undefined for none, '' for internal. */
  const about = ({ start }) => {
    const last = comments.findLast(
      ({ type, value, end }) => type === 'Block' && value[0] === '*' && end <= start,
    )
    if (!last || !/^\s*(?:readonly\s*)?$/.test(code.slice(last.end, start))) return undefined
    const text = last.value
      .replace(/^\*/, '')
      .replaceAll(/^\s*\* ?/gm, '')
      .trim()
    if (text.includes('@internal')) return ''
    return oneLine(text.split(/\n\s*\n|\n@/)[0].replace(/:$/, '.')).replaceAll(/\{@link (\w+)\}/g, '`$1`')
  }
  return { code, program, about }
}

/** A node's text without its body. */
const head = (code, { start, key }, value) => {
  const from = key?.start ?? start
  return code.slice(from, value?.body?.start ?? value?.end)
}

function rowsOf(source, names, as = '') {
  const { code, program, about } = source
  const rows = []
  const seen = new Set()
  const add = (name, signature, text) => {
    if (text === undefined || text === '' || seen.has(name)) return
    seen.add(name)
    rows.push([signature, text])
  }
  for (const statement of program.body) {
    const node = statement.declaration ?? statement
    const name = node.id?.name ?? node.declarations?.[0]?.id?.name
    if (!names.includes(name)) continue
    if (/Function/.test(node.type)) {
      add(name, short(code.slice(node.id.start, node.body?.start ?? node.end)), about(statement))
    } else if (node.type === 'VariableDeclaration') {
      add(name, name, about(statement))
    } else {
      for (const member of node.body.body) {
        const key =
          member.key?.name ?? (member.computed ? code.slice(member.key.start, member.key.end) : undefined)
        if (!key || member.key.type === 'PrivateIdentifier' || member.kind === 'constructor') continue
        const value = member.value
        let signature = key
        if (member.kind === 'method' || member.type === 'TSMethodSignature')
          signature = head(code, member, value ?? { end: member.end })
        else if (value?.type === 'ArrowFunctionExpression')
          signature = `${key}${code.slice(value.start, value.body.start).replace(/\s*=>\s*$/, '')}`
        else if (member.typeAnnotation ?? value?.returnType) {
          const { start, end } = member.typeAnnotation ?? value.returnType
          signature = `${key}${member.optional ? '?' : ''}${code.slice(start, end)}`
        }
        const called = member.computed ? `[${key}]()` : short(signature)
        add(key, `${member.computed ? as.replace(/\.$/, '') : as}${called}`, about(member))
      }
    }
  }
  if (rows.length === 0) throw new Error(`${names}: not found`)
  return rows
}

/** The page. */
export function api() {
  let page = `# API

Every public member of the package, written from its types. Options are in [settings](settings.md), events and
warnings in [events](events.md), errors in [errors](errors.md). Your editor shows the full comments.

| entry | what it is |
|---|---|
| \`autothrottle\` | the throttle, errors, rules for scopes |
`
  for (const entry of ENTRIES) {
    const idea = readFileSync(`${root}js/${entry}.ts`, 'utf8').match(/^\/\*\*([\s\S]*?)\*\//)[1]
    const first = idea
      .replaceAll(/^\s*\* ?/gm, '')
      .trim()
      .split(/\n\s*\n/)[0]
    const text = oneLine(first.replace(/^`autothrottle\/\S+: /, '').replace(/:$/, '.'))
    page += `| \`autothrottle/${entry}\` | ${text} |\n`
  }
  page += '\n## What the entries export\n\n| entry | member | what it does |\n|---|---|---|\n'
  for (const entry of ENTRIES)
    for (const [name, names] of Object.entries(functionsOf(entry)))
      for (const [signature, text] of rowsOf(file(name), names))
        page += `| \`${entry}\` | \`${signature.replaceAll('|', '\\|')}\` | ${text.replaceAll('|', '\\|')} |\n`
  for (const [title, name, names, as] of SECTIONS) {
    if (title) page += `\n## ${title}\n\n| member | what it does |\n|---|---|\n`
    for (const [signature, text] of rowsOf(file(name), names, as))
      page += `| \`${signature.replaceAll('|', '\\|')}\` | ${text.replaceAll('|', '\\|')} |\n`
  }
  return page
}

if (process.argv[1] === fileURLToPath(import.meta.url)) writeFileSync(`${root}docs/api.md`, api())
