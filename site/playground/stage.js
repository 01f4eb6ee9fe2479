/**
 * Runs a program: one simulation for each policy, side by side, on the same server, network and seed.
 *
 * Time goes in whole milliseconds, so a picture does not depend on how fast the screen is drawn. The charts
 * show samples at fixed instants of it, however large the steps between two frames are.
 */
import { createSimulation } from 'autothrottle/simulate'
import { simulationOptions } from './program.js'
import { Recorder } from './recorder.js'

/** Samples in the width of a chart. */
const BINS = 240

export class Stage {
  /** Made from options that make no sense, it throws as `createSimulation` does. */
  constructor(program) {
    this.program = program
    this.bin = Math.max(1, Math.round(program.span / BINS))
    this.now = 0
    this.done = 0
    this.simulations = program.policies.map((_, index) => createSimulation(simulationOptions(program, index)))
    const scopes = ['server', ...Object.keys(program.options.servers ?? {})]
    this.recorders = this.simulations.map(() => new Recorder(scopes, this.bin, program.span))
    this.sample()
  }

  /** Lets this many whole milliseconds pass, with what changes on the way. */
  advance(ms) {
    const end = this.now + Math.floor(ms)
    while (this.now < end) {
      const change = this.program.changes[this.done]
      const nextBin = this.now - (this.now % this.bin) + this.bin
      const stop = Math.max(this.now, Math.min(end, nextBin, change?.at ?? end))
      this.simulations.forEach((simulation, index) => {
        simulation.advance(stop - this.now)
        this.recorders[index].hear(simulation.events())
      })
      this.now = stop
      while (this.program.changes[this.done]?.at <= this.now) this.apply(this.program.changes[this.done++])
      if (this.now % this.bin === 0) this.sample()
    }
    this.program.now = this.now
  }

  /** Up to the next request that leaves or is answered; a minute at most, and no further than `left`. */
  step(left = Number.POSITIVE_INFINITY) {
    const count = () => this.recorders.reduce((sum, { heard }) => sum + heard, 0)
    const before = count()
    const end = this.now + Math.min(60_000, left)
    while (this.now < end && count() === before) this.advance(Math.min(10, end - this.now))
  }

  /** Changes something now. If it makes no sense it throws, and the stage stays as it is. */
  change(change) {
    const dated = { at: this.now, ...change }
    this.apply(dated)
    this.program.changes.splice(this.done++, 0, dated)
  }

  /** Why the next request waits, and all the rest, of each policy. */
  states() {
    return this.simulations.map((simulation) => simulation.state())
  }

  /** Everything for Node: the recordings, and what came of them here. */
  download() {
    const plain = (columns) =>
      Object.fromEntries(Object.entries(columns).map(([name, column]) => [name, Array.from(column)]))
    return {
      format: 'autothrottle-playground-1',
      program: this.program,
      runs: this.simulations.map((simulation) => ({
        recording: simulation.recording(),
        summary: simulation.summary(),
        trace: plain(simulation.trace()),
      })),
    }
  }

  apply({ server, network, throttle, policy, scope }) {
    this.simulations.forEach((simulation, index) => {
      if (policy !== undefined && policy !== index) return
      if (server) simulation.configureServer(server, scope)
      if (network) simulation.configureNetwork(network)
      if (throttle) simulation.configure(throttle, scope)
    })
  }

  sample() {
    this.simulations.forEach((simulation, index) => {
      this.recorders[index].sample(this.now, simulation.state())
    })
  }
}
