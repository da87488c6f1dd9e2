package push

import "dropbell/domain/delivery"

// WithToken returns the result of a call with an access token. If the service refuses the
// token, which was replaced or revoked before its time, it calls once more with a fresh one.
// get returns the token, another one than the refused; call reports whether its token was
// refused; and without is the result if none is issued.
func WithToken(get func(refused string) (string, error), call func(access string) (result delivery.Result, refused bool), without func(error) delivery.Result) delivery.Result {
	access, err := get("")
	if err != nil {
		return without(err)
	}
	result, refused := call(access)
	if !refused {
		return result
	}
	if access, err = get(access); err != nil {
		return without(err)
	}
	result, _ = call(access)
	return result
}
