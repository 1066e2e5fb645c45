export {
  type ComponentLogLevel,
  DEFAULT_LOG_FORMAT,
  hasConfiguration,
  NO_CONFIG_MESSAGE,
  type ServerOptions,
} from './options.ts';
export { type CommandLineContext, type CommandLineOutcome, parseCommandLine } from './parse.ts';
export { commandLineOptionsJson } from './server-info.ts';
export { optionsFromValues } from './values.ts';
