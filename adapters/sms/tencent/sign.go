package tencent

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"strconv"
	"time"
)

// algorithm is the name of Tencent Cloud's signature, version 3.
const algorithm = "TC3-HMAC-SHA256"

const signedHeaders = "content-type;host"

// Sign adds the signature to a POST to the root of a service. The request's Content-Type must be
// set.
func Sign(r *http.Request, body []byte, service, keyID, secret string, now time.Time) {
	date := now.UTC().Format(time.DateOnly)
	stamp := strconv.FormatInt(now.Unix(), 10)
	canonical := "POST\n/\n\ncontent-type:" + r.Header.Get("Content-Type") + "\nhost:" + r.URL.Host + "\n\n" + signedHeaders + "\n" + hash(body)
	scope := date + "/" + service + "/tc3_request"
	key := mac(mac(mac([]byte("TC3"+secret), date), service), "tc3_request")
	signature := hex.EncodeToString(mac(key, algorithm+"\n"+stamp+"\n"+scope+"\n"+hash([]byte(canonical))))
	r.Header.Set("X-TC-Timestamp", stamp)
	r.Header.Set("Authorization", algorithm+" Credential="+keyID+"/"+scope+", SignedHeaders="+signedHeaders+", Signature="+signature)
}

func mac(key []byte, text string) []byte {
	m := hmac.New(sha256.New, key)
	m.Write([]byte(text))
	return m.Sum(nil)
}

func hash(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}
