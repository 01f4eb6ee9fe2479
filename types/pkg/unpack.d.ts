declare const hex: string
export default hex
