"""Forms of reading that measurements pay for; `decode.choose` picks among them."""
