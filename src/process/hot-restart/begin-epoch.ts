// From the options of the command line to the epoch of this process, and the first line of its log. Main thread.

import { writeFile } from 'node:fs/promises';
import type { Clock } from '../../base/clock.ts';
import { WeirError } from '../../base/errors.ts';
import { type Random, SYSTEM_RANDOM } from '../../base/random.ts';
import { hotRestartVersion } from '../../base/version.ts';
import type { ServerOptions } from '../../cli/index.ts';
import type { Logger } from '../../log/index.ts';
import { Epoch, type EpochOptions } from './epoch.ts';

export interface BeginEpochParts {
  readonly options: ServerOptions;
  readonly clock: Clock;
  readonly log: Logger;
  /** Begins the clean shutdown of this process. */
  readonly quit: () => void;
  /** This process serves again, after another had taken over. */
  readonly onServing: () => void;
}

const DYNAMIC_ID_TRIES = 100;
const DYNAMIC_IDS = 2 ** 28;

/** @returns undefined where hot restart is off. @throws as Epoch.begin. */
export async function beginEpoch({
  options,
  clock,
  log,
  quit,
  onServing,
}: BeginEpochParts): Promise<Epoch | undefined> {
  const { socketPath, socketMode, baseId, restartEpoch, useDynamicBaseId, baseIdPath, parentShutdownTimeS } = options;
  const version = hotRestartVersion(options);
  const announce = (id: number): void =>
    log.info(`initializing epoch ${restartEpoch} (base id=${id}, hot restart version=${version})`);
  const place = { socketPath, socketMode: Number.parseInt(socketMode, 8), baseId, epoch: restartEpoch };
  const parts = { place, clock, log, quit, onServing, parentShutdownMs: parentShutdownTimeS * 1000 };
  let epoch: Epoch | undefined;
  if (version !== hotRestartVersion({ disableHotRestart: true })) {
    if (!useDynamicBaseId) announce(baseId);
    epoch = useDynamicBaseId ? await beginAnywhere(parts, SYSTEM_RANDOM) : await Epoch.begin(parts);
    if (useDynamicBaseId) announce(epoch.baseId);
  } else announce(baseId);
  if (baseIdPath !== '') await writeBaseId(baseIdPath, epoch?.baseId ?? baseId, log);
  return epoch;
}

/** With a base id that nobody else uses. @throws WeirError WEIR_HOT_RESTART when none can be found. */
async function beginAnywhere(options: EpochOptions, random: Random): Promise<Epoch> {
  let last: unknown;
  for (let tries = 0; tries < DYNAMIC_ID_TRIES; tries++) {
    const baseId = random.u32() % DYNAMIC_IDS;
    try {
      return await Epoch.begin({ ...options, place: { ...options.place, baseId } });
    } catch (error) {
      if (error instanceof WeirError && error.code === 'WEIR_SOCKET_PATH') throw error;
      last = error;
    }
  }
  throw new WeirError('WEIR_HOT_RESTART', 'unable to select a dynamic base id', { cause: last });
}

async function writeBaseId(path: string, baseId: number, log: Logger): Promise<void> {
  try {
    await writeFile(path, String(baseId));
  } catch {
    log.critical(`cannot open base id output file ${path} for writing.`);
  }
}
