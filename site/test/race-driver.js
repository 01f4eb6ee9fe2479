/** Presses the one button of the race, waits for its end, and posts what stands there. */
const errors = []
addEventListener('error', ({ message }) => errors.push(message))
addEventListener('unhandledrejection', ({ reason }) => errors.push(String(reason)))
addEventListener('securitypolicyviolation', ({ violatedDirective }) => errors.push(violatedDirective))

const texts = (selector) =>
  [...document.querySelectorAll(selector)].map(({ textContent }) =>
    textContent.replaceAll(/\s+/g, ' ').trim(),
  )
const post = (seen) => fetch('done', { method: 'POST', body: JSON.stringify({ errors, ...seen }) })

const looking = setInterval(() => {
  // Until the page has come alive, a click says no more; then the button becomes another.
  const button = document.querySelector('.race-start')
  if (button?.textContent.trim() === 'Start the race') button.click()
  const verdict = texts('.race-verdict p')
  if (verdict.length === 0) return
  clearInterval(looking)
  post({ verdict, figures: texts('.race-figures') })
}, 50)
