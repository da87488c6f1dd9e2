// Compiles domain/message/mail.mjml into mail.html beside it. The first line of the result names the source by its
// SHA-256, which a test compares. Indentation is left out: mail programs clip long mails.
import { createHash } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'
import mjml from 'mjml'

const folder = new URL('../../../domain/message/', import.meta.url)
const source = readFileSync(new URL('mail.mjml', folder), 'utf8')
const { html, errors } = await mjml(source, { validationLevel: 'strict', keepComments: true, fonts: {} })
if (errors.length > 0) throw new Error(JSON.stringify(errors))
const lines = html.split('\n').map((line) => line.trim()).filter((line) => line !== '')
const sum = createHash('sha256').update(source).digest('hex')
writeFileSync(new URL('mail.html', folder), `<!-- mail.mjml ${sum} -->\n${lines.join('\n')}\n`)
