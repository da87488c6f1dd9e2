package stack

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"time"
)

// A Visitor is a browser that has signed in to a console.
type Visitor struct {
	HTTP *http.Client
	Base string // such as http://127.0.0.1:8080
}

// SignIn signs in with a password.
func SignIn(ctx context.Context, base, email, password string) (*Visitor, error) {
	jar, err := cookiejar.New(nil)
	if err != nil {
		return nil, err
	}
	v := &Visitor{&http.Client{Jar: jar, Timeout: time.Minute}, base}
	res, err := v.HTTP.PostForm(base+"/signin", url.Values{"email": {email}, "password": {password}})
	if err != nil {
		return nil, err
	}
	_ = res.Body.Close()
	return v, v.Read(ctx, "/account")
}

// Cookie is the value of the field Cookie that the browser sends.
func (v *Visitor) Cookie() (string, error) {
	home, err := url.Parse(v.Base)
	if err != nil {
		return "", err
	}
	text := ""
	for _, c := range v.HTTP.Jar.Cookies(home) {
		text += c.Name + "=" + c.Value + "; "
	}
	return text, nil
}

// Read reads a page to its end; anything but a page is an error.
func (v *Visitor) Read(ctx context.Context, path string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, v.Base+path, nil)
	if err != nil {
		return err
	}
	res, err := v.HTTP.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	size, err := io.Copy(io.Discard, res.Body)
	if err != nil {
		return err
	}
	if res.StatusCode != http.StatusOK || res.Request.URL.Path == "/signin" || size < 1000 {
		return fmt.Errorf("%s answers %d with %d bytes at %s", path, res.StatusCode, size, res.Request.URL.Path)
	}
	return nil
}
