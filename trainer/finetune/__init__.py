"""Fine-tunes a Llama from a Hugging Face folder back into one, by llama-recipes' command line."""
