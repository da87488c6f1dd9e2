package siteverify

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	"dropbell/domain/pass"
)

func TestVerify(t *testing.T) {
	for _, c := range []struct {
		name   string
		status int
		answer string
		ok     bool
		err    error
	}{
		{"accepted", 200, `{"success":true,"challenge_ts":"2027-01-01T00:00:00Z","hostname":"shop.example"}`, true, nil},
		{"refused", 200, `{"success":false,"error-codes":["invalid-input-response"]}`, false, nil},
		{"used twice", 200, `{"success":false,"error-codes":["timeout-or-duplicate"]}`, false, nil},
		{"a wrong secret", 200, `{"success":false,"error-codes":["invalid-input-secret"]}`, false, pass.ErrUnreachable},
		{"no JSON", 200, `<html>`, false, pass.ErrUnreachable},
		{"JSON of something", 200, `{}`, false, pass.ErrUnreachable},
		{"an error of the service", 502, `{"success":true}`, false, pass.ErrUnreachable},
	} {
		t.Run(c.name, func(t *testing.T) {
			service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Method != http.MethodPost || r.PostFormValue("secret") != "s3cret" || r.PostFormValue("response") != "token" || r.PostFormValue("remoteip") != "" {
					t.Errorf("%s %v", r.Method, r.PostForm)
				}
				w.WriteHeader(c.status)
				_, _ = w.Write([]byte(c.answer))
			}))
			defer service.Close()
			ok, err := New(service.URL, "s3cret").Verify(t.Context(), "token")
			if ok != c.ok || !errors.Is(err, c.err) {
				t.Errorf("%v %v", ok, err)
			}
		})
	}
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	if ok, err := New(gone.URL, "s3cret").Verify(t.Context(), "token"); ok || !errors.Is(err, pass.ErrUnreachable) {
		t.Errorf("%v %v", ok, err)
	}
}
