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

let isStarted = false
const looking = setInterval(() => {
  const button = document.querySelector('.race-start')
  if (!isStarted && button && !button.disabled) button.click()
  isStarted ||= button?.disabled === true
  const verdict = texts('.race-verdict p')
  if (verdict.length === 0) return
  clearInterval(looking)
  post({ verdict, figures: texts('.race-figures') })
}, 50)
