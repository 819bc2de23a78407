// A HIT of a design that brings no script: the form as the server sent it, with drafts and sending like every other.

import { run } from "../hit.js";
import { native } from "../hit/native.js";

run(native());
