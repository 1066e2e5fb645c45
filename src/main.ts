// Entry point of the program: reads the command line and hands over to what it asks for. Main thread.

import { formatVersion, hotRestartVersion, readVersion } from './base/version.ts';
import { hasConfiguration, NO_CONFIG_MESSAGE, parseCommandLine } from './cli/index.ts';
import { openLog } from './process/log.ts';
import { print, printDocument } from './process/print.ts';

async function main(argv: readonly string[]): Promise<number> {
  const version = readVersion();
  const outcome = parseCommandLine(argv, {
    program: 'weir',
    version: formatVersion(version),
    hotRestartVersion,
  });
  if (outcome.kind === 'exit') {
    print('stderr', outcome.stderr, 'ask');
    return printDocument(outcome.stdout) || outcome.code;
  }
  const { options, warnings } = outcome;
  if (options.printSchema) {
    const { printSchema } = await import('./process/print-schema.ts');
    return printSchema();
  }
  const log = openLog(options, import.meta.url);
  if (!log) return 1;
  // Whatever ends the program, also an exception that nobody caught.
  process.once('exit', () => log.destination.close());
  for (const warning of warnings) log.loggers.get('main').warning(warning);
  if (options.enableCoreDump) {
    const { enableCoreDump } = await import('./process/core-dump.ts');
    enableCoreDump(log.loggers);
  }
  if (options.mode !== 'validate') {
    const { serve } = await import('./process/serve.ts');
    return await serve({ options, version, log });
  }
  if (hasConfiguration(options)) {
    const { validate } = await import('./process/validate.ts');
    return validate(options, log);
  }
  log.loggers.get('main').critical(NO_CONFIG_MESSAGE);
  log.echo('main', [NO_CONFIG_MESSAGE]);
  return 1;
}

process.exit(await main(process.argv.slice(2)));
