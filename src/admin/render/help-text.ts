// GET /help, which is also the answer to unknown paths.

import type { Endpoint, EndpointParameter } from '../endpoint.ts';

/** @param endpoints in any order. */
export function helpText(endpoints: readonly Endpoint[]): string {
  const sorted = endpoints.toSorted((a, b) => (a.path < b.path ? -1 : 1));
  return `admin commands are:\n${sorted.map(endpointText).join('')}`;
}

function endpointText({ path, mutates, help, parameters }: Endpoint): string {
  return `  ${path}${mutates ? ' (POST)' : ''}: ${help}\n${parameters.map(parameterText).join('')}`;
}

function parameterText(parameter: EndpointParameter): string {
  const choices = parameter.kind === 'choice' ? `; One of (${parameter.choices.join(', ')})` : '';
  return `      ${parameter.id}: ${parameter.help}${choices}\n`;
}
