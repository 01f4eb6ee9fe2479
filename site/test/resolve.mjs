/** Lets Node find `autothrottle` as the site's bundler does: what was built, beside this folder. */
export function resolve(specifier, context, next) {
  const entry = specifier.match(/^autothrottle(?:\/(.+))?$/)
  if (!entry) return next(specifier, context)
  return next(new URL(`../../dist/${entry[1] ?? 'index'}.js`, import.meta.url).href, context)
}
