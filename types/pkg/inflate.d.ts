export declare function inflate(data: Uint8Array, options: { out: Uint8Array }): Uint8Array
