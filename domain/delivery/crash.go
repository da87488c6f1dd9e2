package delivery

import (
	"fmt"
	"runtime/debug"
)

// A Crash is a panic while a message was made or sent.
type Crash struct {
	// What describes the panic without any value that may come from a message: it is
	// the text of a runtime error, else only the type of the panic's value.
	What  string
	Stack []byte
}

// Isolated returns the answer of send, which hands one message over. A panic of
// send is a Permanent answer for that message alone.
func Isolated(send func() Result) (r Result) {
	defer func() {
		if p := recover(); p != nil {
			r = crashed(p)
		}
	}()
	return send()
}

// crashed is the answer for a message that made its sender panic with p. It is
// to be called while the panic is being recovered from: it records the stack.
func crashed(p any) Result {
	c := &Crash{What: fmt.Sprintf("a panic of type %T", p), Stack: debug.Stack()}
	if err, ok := p.(interface {
		error
		RuntimeError()
	}); ok {
		c.What = DetailOf(err.Error())
	}
	return Result{Status: Permanent, Detail: DetailOf("the sender failed on this message: " + c.What), Crash: c}
}
