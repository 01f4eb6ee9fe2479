declare const packed: { length: number; base64: string }
export default packed
