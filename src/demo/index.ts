export { type Demo, startDemo } from './demo.ts';
