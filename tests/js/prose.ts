/**
 * The pages, and the rules for prose (CONTRIBUTING.md) that a program can check: the length of sentences, and
 * words.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

export const root = fileURLToPath(new URL('../..', import.meta.url))
export const read = (path: string) => readFileSync(join(root, path), 'utf8')
export const guides = readdirSync(join(root, 'docs'))
  .filter((name) => name.endsWith('.md'))
  .map((name) => `docs/${name}`)
export const pages = [
  'README.md',
  'ARCHITECTURE.md',
  'CONTRIBUTING.md',
  'SECURITY.md',
  'python/README.md',
  'tower/README.md',
  ...guides,
]

/** The most words of one sentence. */
export const LONGEST = 25

/** Words that hide who does what, and what to write instead. */
export const WORDS: readonly (readonly [RegExp, string])[] = [
  [/\bwhoever\b/i, 'name who: you, the server, a process'],
  [/\b(?:nobody|somebody)\b/i, 'name who, or who does not'],
  [/(?<!")\bnothing\b/i, 'name what: no request, no timer, no option'],
  [/\bso many\b/i, 'a number, or "that many requests"'],
  [/\bsuch\b(?! as\b)/i, 'repeat the noun'],
  [/\b(?:one of whose|its kin)\b/i, 'two sentences'],
  [
    /\b(?:is|are|was|were) (?:told|heard|felt)\b/i,
    'say who tells or reads: "a warning says", "the throttle reads"',
  ],
  [/\b(?:simply|obviously|of course|please note)\b/i, 'leave it out'],
]

const plain = (text: string) =>
  text
    .replaceAll(/!?\[([^\]]*)\](?:\([^)]*\)|\[[^\]]*\])/g, '$1')
    .replaceAll(/``.+?``|`[^`]*`/g, 'code')
    .replaceAll(/code(?:(?:,|;| and| or|,? …) code)+/g, 'code') // a list of names is read as one
    .replaceAll(/<[^>]+>/g, '')
    .replaceAll(/[*_]{1,3}(?=\S)|(?<=\S)[*_]{1,3}/g, '')

/** Sentences of a text without mark-up: a colon ends one, too, since what follows is an example or a list. */
export const sentences = (text: string) =>
  plain(text)
    .split(/(?<=[.!?:])["')”]*\s+/)
    .map((sentence) => sentence.replaceAll(/\s+/g, ' ').trim())
    .filter(Boolean)

export const wordsOf = (sentence: string) =>
  sentence.split(' ').filter((word) => /[\p{L}\p{N}]/u.test(word)).length

/** The paragraphs, list items and cells of a page of Markdown, each with its line. */
export function blocks(page: string): { line: number; text: string }[] {
  const found: { line: number; text: string }[] = []
  let open: { line: number; text: string } | undefined
  let isCode = false
  for (const [index, row] of page
    .replace(/^---\n[\s\S]*?\n---\n/, '')
    .split('\n')
    .entries()) {
    const line = index + 1
    const isFence = /^\s*```/.test(row)
    if (isFence) isCode = !isCode
    if (isCode || isFence || /^\s*$|^\s*<|^\[[^\]]+\]: /.test(row)) open = undefined
    else if (/^\s*\|/.test(row)) {
      open = undefined
      // A bar in code is no border.
      const cells = row.replaceAll('\\|', '/').replaceAll(/`[^`]*`/g, (code) => code.replaceAll('|', '/'))
      for (const text of cells.split('|')) if (!/^[\s:-]*$/.test(text)) found.push({ line, text })
    } else if (open && !/^\s*(?:[-*] |\d+\. |#|>)/.test(row)) open.text += `\n${row}`
    else {
      open = { line, text: row.replace(/^\s*(?:[-*] |\d+\. |#+ |> ?)/, '') }
      found.push(open)
      if (row.startsWith('#')) open = undefined
    }
  }
  return found
}

/** The problems of a text's words. */
export const badWords = (text: string) =>
  WORDS.flatMap(([word, instead]) => {
    const found = plain(text).match(word)
    return found ? [`"${found[0]}": ${instead}`] : []
  })

/** The comments of a source in TypeScript, Rust or Python, joined where they follow each other. */
export function comments(source: string, isPython: boolean): { line: number; text: string }[] {
  const pattern = isPython
    ? /"""[\s\S]*?"""|(?:^[ \t]*# .*\n)+/gm
    : /\/\*\*[\s\S]*?\*\/|(?:^[ \t]*\/\/[/!]? .*\n)+|[ ]\/\/ .*$/gm
  // A string that is a value is no docstring.
  const isValue = ({ index }: RegExpExecArray) => isPython && /[=(,]\s*[a-z]?$/.test(source.slice(0, index))
  const found = [...source.matchAll(pattern)].filter((match) => !isValue(match))
  return found.map((match) => ({
    line: source.slice(0, match.index).split('\n').length,
    text: match[0]
      .replaceAll(/^\s*(?:\/\*\*|\*\/|\*|\/\/[/!]?|#)|"""/gm, '')
      .replaceAll(/```[\s\S]*?```|^\s*\.\. code-block::.*\n(?:\s*\n| {4}.*\n)*/gm, '')
      .replaceAll(/^\s*\|.*$/gm, '\n'),
  }))
}

/** A sentence of a comment opens with its subject or its verb: these words stand in place of one. */
const OPENS_WITHOUT_SUBJECT = /^(?:What|Who|Whose|Whom|So)\b(?!.*\?$)/

/**
 * The problems of a source's comments. A semicolon ends a sentence there, since traps are lists: "a timer per
 * request; a timer that fires early".
 */
export const problemsOfComments = (source: string, isPython: boolean) =>
  comments(source, isPython).flatMap(({ line, text }) => {
    const said = text
      .split(/\n\s*\n|\n\s*(?:[-*] |\d+\. )/)
      .flatMap(sentences)
      .flatMap((sentence) => sentence.split(/;\s/))
    return [
      ...badWords(text).map((problem) => `${line}: ${problem}`),
      ...said
        .filter((sentence) => wordsOf(sentence) > LONGEST)
        .map((sentence) => `${line}: ${wordsOf(sentence)} words: ${sentence}`),
      ...said
        .filter((sentence) => OPENS_WITHOUT_SUBJECT.test(sentence))
        .map((sentence) => `${line}: name the subject first, or "therefore" for "so": ${sentence}`),
    ]
  })

/** The problems of a page, in lines that an editor can open. */
export const problemsOf = (page: string) =>
  blocks(page).flatMap(({ line, text }) => [
    ...badWords(text).map((problem) => `${line}: ${problem}`),
    ...sentences(text)
      .filter((sentence) => wordsOf(sentence) > LONGEST)
      .map((sentence) => `${line}: ${wordsOf(sentence)} words: ${sentence}`),
  ])
