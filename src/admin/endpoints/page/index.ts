import type { Endpoint } from '../../endpoint.ts';
import { PAGE_HOSTS } from './hosts.ts';
import { PAGE_LOGGERS } from './loggers.ts';
import { overviewEndpoint } from './overview.ts';
import { PAGE_HISTOGRAM, PAGE_STATS } from './stats.ts';

/** What the page asks for. Its own affair, and not listed with the commands. */
export function pageEndpoints(isReadOnly: boolean): readonly Endpoint[] {
  return [overviewEndpoint(isReadOnly), PAGE_HOSTS, PAGE_LOGGERS, PAGE_STATS, PAGE_HISTOGRAM];
}
