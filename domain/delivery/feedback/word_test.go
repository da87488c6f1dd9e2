package feedback_test

import (
	"context"
	"errors"
	"testing"

	"dropbell/domain/delivery/feedback"
)

func TestWords(t *testing.T) {
	for text, want := range map[string]feedback.Word{
		"STOP": feedback.Stop, " stop. ": feedback.Stop, "Stop\n": feedback.Stop, "\"STOP\"": feedback.Stop, "stop  all": feedback.Stop, "Unsubscribe!": feedback.Stop,
		"退订": feedback.Stop, "TD": feedback.Stop, "td": feedback.Stop, "Ｔ": feedback.Stop, "ＴＤ。": feedback.Stop, "T": feedback.Stop, "R": feedback.Stop,
		"START": feedback.Start, "unstop": feedback.Start, "Help?": feedback.Help, "帮助": feedback.Help,
		"": "", "please stop by": "", "don't stop": "", "stopp": "", "TT": "", "退订了吗": "", "😀": "", "1": "",
	} {
		if got := feedback.WordOf(text); got != want {
			t.Errorf("%q is %q, want %q", text, got, want)
		}
	}
}

// carried records the requests that are carried out.
type carried struct {
	words []feedback.Word
	err   error
}

func (c *carried) CarryOut(_ context.Context, word feedback.Word, _ feedback.Reply, _ []string) error {
	c.words = append(c.words, word)
	return c.err
}

func TestReplies(t *testing.T) {
	c := &carried{}
	replies := []feedback.Reply{{Text: "thanks"}, {Text: "STOP"}, {Text: "start"}}
	if answers, err := (feedback.Replier{Words: c}).Replies(t.Context(), replies); err != nil || len(answers) != 3 || len(c.words) != 2 || c.words[0] != feedback.Stop {
		t.Errorf("got %v, %v, %v", answers, err, c.words)
	}
	c.err = errors.New("the database is away")
	if _, err := (feedback.Replier{Words: c}).Replies(t.Context(), replies); err == nil {
		t.Error("what was not stored is answered")
	}
}
