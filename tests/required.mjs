/**
 * The rule for a test where a runtime, a browser or a server is missing: `npm run test:all` wants everything
 * and fails; a file that you run by hand skips the test and says why.
 */
export const isAll = process.env.TEST_ALL === 'true'

/** The `skip` of a test: why it cannot run here, or `false` where it runs. */
export const skipUnless = (isThere, why = 'not installed') => (isThere || isAll ? false : why)
