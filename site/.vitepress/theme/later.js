/** Parts of a page that come alive one after the other: no task is long, and what is tapped first answers. */
import { defineAsyncComponent } from 'vue'
import { soon } from '../../playground/soon.js'

/** The same component. Where a page was rendered before, it takes over in a task of its own. */
export const later = (part) => defineAsyncComponent({ loader: async () => part, hydrate: soon })
