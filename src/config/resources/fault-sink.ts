// Where conversions and checks report. They know field paths only; whoever started them adds file and line.

export interface FaultSink {
  /** @param at field path from the root message; @param message offending value, rule and limit. */
  error(at: string, message: string): void;
  warning(at: string, message: string): void;
}
