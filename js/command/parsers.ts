/** The libraries that read HTML and robots.txt. They travel in the command's own file: npx installs none. */
export { Tokenizer } from 'htmlparser2'
export { rules } from '../robots.js'
