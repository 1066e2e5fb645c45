// GET /help, which is also the answer to unknown paths.

import type { Endpoint } from '../endpoint.ts';
import type { ListedParameter } from '../parameter.ts';

/** @param endpoints in any order. */
export function helpText(endpoints: readonly Endpoint[]): string {
  const sorted = endpoints.toSorted((a, b) => (a.path < b.path ? -1 : 1));
  return `admin commands are:\n${sorted.map(endpointText).join('')}`;
}

function endpointText({ path, mutates, help, parameters }: Endpoint): string {
  return `  ${path}${mutates ? ' (POST)' : ''}: ${help}\n${parameters.map(parameterText).join('')}`;
}

function parameterText({ name, label = name, help, choices }: ListedParameter): string {
  const values = choices.length === 0 ? '' : `; One of (${choices.join(', ')})`;
  return `      ${label}: ${help}${values}\n`;
}
