package dropbell

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"
)

// Problem is an answer other than 2xx (RFC 9457). Decide by its Code.
type Problem struct {
	Status int    `json:"status"`
	Code   string `json:"code"` // stable; "" if something between has answered for the server
	Title  string `json:"title"`
	Detail string `json:"detail"` // in English, for logs
	Type   string `json:"type"`   // where the code is explained
	// Instance is the id of the request, to be quoted in reports.
	Instance string    `json:"instance"`
	Errors   []Offence `json:"errors"`
	// RetryAfter is the pause that the server asks for; 0 = none.
	RetryAfter time.Duration `json:"-"`
}

// Offence is one thing that was wrong with a request.
type Offence struct {
	Location string `json:"location"`
	Message  string `json:"message"`
}

// Error says status, code and detail.
func (p *Problem) Error() string {
	return fmt.Sprintf("dropbell: %d %s: %s", p.Status, p.Code, p.Detail)
}

// Code returns the code of the problem in err; "" if there is none.
func Code(err error) string {
	if p, ok := errors.AsType[*Problem](err); ok {
		return p.Code
	}
	return ""
}

func problemOf(answer *http.Response, body []byte) *Problem {
	p := &Problem{}
	if json.Unmarshal(body, p) != nil || p.Code == "" {
		p = &Problem{Title: http.StatusText(answer.StatusCode), Detail: http.StatusText(answer.StatusCode)}
	}
	p.Status, p.RetryAfter = answer.StatusCode, retryAfter(answer.Header, time.Now())
	return p
}
