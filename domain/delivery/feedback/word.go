package feedback

import (
	"context"
	"strings"
	"unicode"
)

// A Word is the request in a text message to the shop's number.
type Word string

// The words; any other text is none.
const (
	Stop  Word = "stop"  // no more text messages
	Start Word = "start" // takes a Stop back
	Help  Word = "help"
)

// words are the words on which networks and providers agree: the lists of CTIA, of Twilio, and of
// China.
var words = map[string]Word{
	"STOP": Stop, "STOPALL": Stop, "STOP ALL": Stop, "UNSUBSCRIBE": Stop, "CANCEL": Stop, "END": Stop, "QUIT": Stop, "REVOKE": Stop, "OPTOUT": Stop, "OPT OUT": Stop, "OPT-OUT": Stop,
	"退订": Stop, "退訂": Stop, "取消": Stop, "拒收": Stop, "TD": Stop, "T": Stop, "TD/T": Stop, "R": Stop,
	"START": Start, "UNSTOP": Start, "YES": Start, "OPTIN": Start, "OPT IN": Start, "OPT-IN": Start, "恢复": Start, "恢復": Start,
	"HELP": Help, "INFO": Help, "帮助": Help, "幫助": Help,
}

// WordOf returns the request in a text; "" = the text contains no request. The text must consist
// of the word alone, in upper or lower case. Spaces, punctuation and quotes around the word are
// ignored. Full-width letters, as Chinese keyboards write them, are accepted.
func WordOf(text string) Word {
	text = strings.Map(func(r rune) rune {
		if r >= '！' && r <= '～' {
			return r - '！' + '!'
		}
		return r
	}, text)
	text = strings.TrimFunc(text, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
	return words[strings.Join(strings.Fields(strings.ToUpper(text)), " ")]
}

// Words carries words out.
type Words interface {
	// CarryOut changes the SMS opt-outs of every user with one of the numbers, in one
	// transaction, durably. The numbers are forms of the sender's number. Stop opts out. Start
	// takes Stop back, unless the user's opt-out was changed in another way since. Carrying a
	// message out again changes nothing.
	CarryOut(ctx context.Context, word Word, r Reply, numbers []string) error
}

// A Replier carries out the requests in replies to text messages.
type Replier struct {
	Words Words
	// Forms returns the forms of a number in E.164 under which messages are sent to it, including
	// the number itself; nil = the number alone.
	Forms func(number string) []string
}

// Replies carries out every reply that is a word, in order. No confirmation is sent: the provider
// or network confirms the words itself.
func (r Replier) Replies(ctx context.Context, replies []Reply) (answers []string, err error) {
	for _, reply := range replies {
		if word := WordOf(reply.Text); word != "" {
			numbers := []string{reply.From}
			if r.Forms != nil {
				numbers = r.Forms(reply.From)
			}
			if err := r.Words.CarryOut(ctx, word, reply, numbers); err != nil {
				return nil, err
			}
		}
	}
	return make([]string, len(replies)), nil
}
