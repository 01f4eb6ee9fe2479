/** The program behind `npx autothrottle`: the command where its package is installed, else what to type. */
const PACKAGE = 'autothrottle-cli'

try {
  await import(PACKAGE)
} catch (error) {
  const { code, message } = error as NodeJS.ErrnoException
  if (code !== 'ERR_MODULE_NOT_FOUND' || !message.includes(`'${PACKAGE}'`)) throw error
  process.stderr.write(`The command is a package of its own: type npx ${PACKAGE} for npx autothrottle.\n`)
  process.exitCode = 2
}
