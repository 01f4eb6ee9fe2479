/** The base that the site is built for, and that no file of it names in the end. */
export const BASE = '/__base__/'
