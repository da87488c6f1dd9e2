package docs

import docpages "dropbell/views/pages/docs"

// The example of the page: its signature is right for the secret.
const (
	sampleSecret    = "whsec_ZHJvcGJlbGwtZXhhbXBsZS1zZWNyZXQtMDEyMzQ1"
	sampleID        = "msg_rZ3cQmVbYt0pX2uKxw1fJ9aH"
	sampleTimestamp = "1798804500"
	sampleSignature = "v1,pMrmP+ded14WLKO/Gymg1nOsmN4u/TrinCrlaFM+p+4="
	sampleBody      = `{"messages":[{"user_id":"1001","template_id":"1","kind":"reminder","slot":1,"title":"First drop","text":"Opens at 20:00","idempotency_key":"reminder-1-1-1798804500-webhook-1001"}]}`
)

// webhooks is the page about calls of the channel webhook.
func webhooks() docpages.Webhooks {
	return docpages.Webhooks{
		Headers: "POST /your/endpoint HTTP/1.1\nContent-Type: application/json\nwebhook-id: " + sampleID + "\nwebhook-timestamp: " + sampleTimestamp +
			"\nwebhook-signature: " + sampleSignature + "\n\n" + sampleBody,
		Secret: sampleSecret,
		Fields: []docpages.Field{
			{Name: "messages[].user_id", Type: "id", Required: true},
			{Name: "messages[].template_id", Type: "id", Required: true},
			{Name: "messages[].kind", Type: "string", Required: true},
			{Name: "messages[].slot", Type: "integer", Required: true},
			{Name: "messages[].title", Type: "string", Required: true},
			{Name: "messages[].text", Type: "string", Required: true},
			{Name: "messages[].idempotency_key", Type: "string", Required: true},
		},
		Examples: []docpages.Example{{Language: "JavaScript", Text: verifyJavaScript}, {Language: "Python", Text: verifyPython}, {Language: "Go", Text: verifyGo}},
	}
}

const verifyJavaScript = `import { createHmac, timingSafeEqual } from "node:crypto";

// body is the raw text of the request, before any JSON parser has read it.
export function verify(headers, body, secret) {
  const timestamp = Number(headers["webhook-timestamp"]);
  if (!(Math.abs(Date.now() / 1000 - timestamp) < 300)) return false;
  const key = Buffer.from(secret.replace("whsec_", ""), "base64");
  const signed = headers["webhook-id"] + "." + headers["webhook-timestamp"] + "." + body;
  const wanted = createHmac("sha256", key).update(signed).digest();
  return headers["webhook-signature"].split(" ").some((part) => {
    const given = Buffer.from(part.replace("v1,", ""), "base64");
    return given.length === wanted.length && timingSafeEqual(given, wanted);
  });
}`

const verifyPython = `import base64
import hashlib
import hmac
import time


def verify(headers, body, secret):
    """body is the raw bytes of the request, before any JSON parser has read them."""
    if not abs(time.time() - int(headers["webhook-timestamp"])) < 300:
        return False
    key = base64.b64decode(secret.removeprefix("whsec_"))
    signed = (headers["webhook-id"] + "." + headers["webhook-timestamp"] + ".").encode() + body
    wanted = "v1," + base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()
    return any(hmac.compare_digest(part, wanted) for part in headers["webhook-signature"].split(" "))`

const verifyGo = `package hooks

import (
	"io"
	"net/http"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

// Receive answers 204 after the messages are stored, 400 to calls of others.
func Receive(secret string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 1<<20))
		if err != nil {
			return
		}
		hook, err := standardwebhooks.NewWebhook(secret)
		if err == nil {
			err = hook.Verify(body, r.Header)
		}
		if err != nil {
			http.Error(w, "the signature is not valid", http.StatusBadRequest)
			return
		}
		w.WriteHeader(http.StatusNoContent)
	}
}`
