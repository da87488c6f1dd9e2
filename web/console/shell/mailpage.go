package shell

import (
	"bytes"
	"compress/flate"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"time"

	"dropbell/domain/message"
)

const (
	// maxAddress is the greatest length of the address of a mail's page: proxies refuse longer
	// addresses.
	maxAddress = 7000
	// maxDraft bounds a draft that is unpacked from an address, in bytes. It is more than any draft
	// that [message.Draft.Bounded] accepts.
	maxDraft = 256 << 10
)

// MailPage returns the address of the page that renders a mail, for the frame of a preview: below
// the message page of a drop or a shop. The draft is in the address, so that text being typed need
// not be stored. The address is "" if the draft is too long for it. user and ends may be empty.
func MailPage(base string, d message.Draft, user string, ends time.Time) string {
	var b bytes.Buffer
	w, _ := flate.NewWriter(&b, flate.BestCompression) // a level that exists
	_ = json.NewEncoder(w).Encode(d)                   // into memory
	_ = w.Close()
	q := url.Values{"draft": {base64.RawURLEncoding.EncodeToString(b.Bytes())}}
	if user != "" {
		q.Set("user", user)
	}
	if !ends.IsZero() {
		q.Set("ends", ends.UTC().Format(time.RFC3339))
	}
	if address := base + "/mail?" + q.Encode(); len(address) <= maxAddress {
		return address
	}
	return ""
}

// MailDraft reads the draft in an address of [MailPage]. It returns [ErrMalformed], or a
// [fault.Fields] that names the fields that are too large to be rendered: a stranger can write such
// an address.
func MailDraft(r *http.Request) (d message.Draft, ends time.Time, err error) {
	packed, err := base64.RawURLEncoding.DecodeString(r.FormValue("draft"))
	if err == nil {
		err = json.NewDecoder(io.LimitReader(flate.NewReader(bytes.NewReader(packed)), maxDraft)).Decode(&d)
	}
	if err != nil {
		return d, ends, ErrMalformed
	}
	if err := d.Bounded(); err != nil {
		return d, ends, err
	}
	if typed := r.FormValue("ends"); typed != "" {
		if ends, err = time.Parse(time.RFC3339, typed); err != nil {
			return d, ends, ErrMalformed
		}
	}
	return d, ends, nil
}
