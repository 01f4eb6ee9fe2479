declare const deflated: { length: number; base64: string }
export default deflated
