export declare const build: { version: string; revision: string; modules: Record<string, string> }
