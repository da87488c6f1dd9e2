package smtp

import (
	"context"
	"errors"
	"net/textproto"
	"regexp"
	"strconv"
	"strings"
	"time"

	gomail "github.com/wneessen/go-mail"

	"dropbell/domain/delivery"
)

// enhanced matches an enhanced status code (RFC 3463) before the server's words.
var enhanced = regexp.MustCompile(`^[245]\.\d{1,3}\.\d{1,3}\b`)

// An answer is the outcome of one mail.
type answer struct {
	result delivery.Result
	// broken: the connection must not be used again.
	broken bool
	// unsent: the server cannot have accepted the mail, so the mail may be tried again at once
	// on another connection.
	unsent bool
	// open: the server refused the transaction half-way, so it must be reset. The library resets
	// the transaction after every other refusal.
	open bool
	// slow: the server asks for fewer mails, in reply to one recipient or mail.
	slow bool
}

// read turns the library's error for one mail into an answer.
func read(err error) answer {
	if err == nil {
		return answer{result: delivery.Result{Status: delivery.Delivered}}
	}
	sendErr, ok := errors.AsType[*gomail.SendError](err)
	if !ok {
		return answer{result: delivery.Result{Detail: delivery.CauseOf(err)}, broken: true}
	}
	// 421 announces that the server hangs up (RFC 5321, section 4.2.2).
	code := sendErr.ErrorCode()
	a := answer{
		result: classify(sendErr.Reason, code, wordsOf(sendErr, code)),
		broken: code == 0 || code == 421,
		unsent: sendErr.Reason == gomail.ErrSMTPMailFrom || sendErr.Reason == gomail.ErrSMTPRcptTo ||
			sendErr.Reason == gomail.ErrConnCheck,
		open: sendErr.Reason == gomail.ErrSMTPData && code != 0 && code != 421,
		slow: asksForFewer(sendErr.Reason, code, wordsOf(sendErr, code)),
	}
	// A server that answers 4xx or 5xx has not taken the mail, also if the mail was complete
	// (RFC 5321, section 4.2.1).
	a.result.Unsent = a.unsent || code >= 400
	return a
}

// asksForFewer reports whether the recipient's domain asks for fewer mails: a policy reply
// (class 4.7) to a recipient or a complete mail, other than greylisting.
func asksForFewer(reason gomail.SendErrReason, code int, words string) bool {
	lower := strings.ToLower(words)
	return (reason == gomail.ErrSMTPRcptTo || reason == gomail.ErrSMTPData || reason == gomail.ErrSMTPDataClose) &&
		throttles(code, enhanced.FindString(words)) && !strings.Contains(lower, "greylist") && !strings.Contains(lower, "graylist")
}

// wordsOf returns the server's text after the code. The library gives this text only quoted,
// inside a sentence that also names the recipient.
func wordsOf(err *gomail.SendError, code int) string {
	_, words, _ := strings.Cut(err.Error(), " "+strconv.Itoa(code)+" ")
	quoted, prefixErr := strconv.QuotedPrefix(words)
	if prefixErr != nil {
		return ""
	}
	words, _ = strconv.Unquote(quoted)
	return words
}

// classify returns the result of a server's reply to the command that reason names; code 0 = no
// reply.
func classify(reason gomail.SendErrReason, code int, words string) delivery.Result {
	if code == 0 {
		return delivery.Result{Detail: "connection lost while " + reason.String()}
	}
	result := delivery.Result{Detail: delivery.DetailOf(strconv.Itoa(code) + " " + words)}
	status := enhanced.FindString(words)
	switch {
	case reason == gomail.ErrSMTPRcptTo && oneRecipient(code, status):
		result.Apart = true
		if greylists(status, words) {
			result.After = greylisted
		}
	case throttles(code, status):
		result.Status = delivery.Throttled
	case permanent(reason, code):
		result.Status = delivery.Permanent
	}
	return result
}

// greylisted is how long a mail waits after greylisting by its recipient's server. Such servers
// ask for one to five minutes; the attempts of a message last that long.
const greylisted = 45 * time.Second

// oneRecipient reports whether a reply to RCPT TO defers this recipient only.
// 421 ends the connection, and the classes 4.3 and 4.4 concern the server and
// its network, so they count for the channel.
func oneRecipient(code int, status string) bool {
	return code >= 400 && code < 500 && code != 421 && !strings.HasPrefix(status, "4.3.") && !strings.HasPrefix(status, "4.4.")
}

// greylists reports whether the server defers a recipient because it does not know the sender
// yet (greylisting).
func greylists(status, words string) bool {
	words = strings.ToLower(words)
	return strings.HasPrefix(status, "4.7.") || strings.Contains(words, "greylist") || strings.Contains(words, "graylist")
}

// throttles reports whether a reply asks the channel to slow down. Class 4.7 is policy, with
// which servers say "too many" or "not so fast". In reply to RCPT TO only 421 slows down the
// channel; see [oneRecipient].
func throttles(code int, status string) bool {
	return (code == 421 || code == 450 || code == 451) && strings.HasPrefix(status, "4.7.")
}

// permanent reports whether a reply finally refuses this recipient or this mail. A refused
// sender (MAIL FROM), missing authentication (530, 535) and commands out of order (503) are our
// mistakes and must not end a delivery.
func permanent(reason gomail.SendErrReason, code int) bool {
	if code < 500 || code == 503 || code == 530 || code == 535 {
		return false
	}
	return reason == gomail.ErrSMTPRcptTo || reason == gomail.ErrSMTPData || reason == gomail.ErrSMTPDataClose
}

// refused is the result of every message when no connection could be opened. No server has taken
// any of the messages.
func refused(err error) delivery.Result {
	result := refusal(err)
	result.Unsent = true
	return result
}

func refusal(err error) delivery.Result {
	words := ""
	reply, ok := errors.AsType[*textproto.Error](err)
	if ok {
		words = strconv.Itoa(reply.Code) + " " + reply.Msg
	}
	switch {
	case ok && throttles(reply.Code, enhanced.FindString(reply.Msg)):
		return delivery.Result{Status: delivery.Throttled, Detail: delivery.DetailOf(words)}
	case ok:
		return delivery.Result{Detail: delivery.DetailOf("the mail server refused us: " + words)}
	case errors.Is(err, errClosed), errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return delivery.Result{Detail: delivery.CauseOf(err)}
	}
	return delivery.Result{Detail: delivery.DetailOf("no connection to the mail server: " + delivery.CauseOf(err))}
}
